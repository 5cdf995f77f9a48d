// Greets with @platformatic/kafka, as its README has it: an admin, a producer, and the stream of a consumer.
// Usage: platformatic_greet.mjs BROKER
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";

const bootstrapBrokers = [process.argv[2]];
const admin = new Admin({ clientId: "admin", bootstrapBrokers });
const made = await admin.createTopics({ topics: [`made-${process.pid}`], partitions: 3, replicas: 1 });
const metadata = await admin.metadata({ topics: made.map((topic) => topic.name) });
console.log(`made ${[...metadata.topics.values()].map((topic) => topic.partitionsCount)} partitions`);
await admin.deleteTopics({ topics: made.map((topic) => topic.name) });
await admin.close();

const producer = new Producer({ clientId: "greeter", bootstrapBrokers, serializers: stringSerializers });
const consumer = new Consumer({
  groupId: "greeters",
  clientId: "greeter",
  bootstrapBrokers,
  deserializers: stringDeserializers,
});
const stream = await consumer.consume({
  autocommit: true,
  topics: ["names"],
  mode: "committed",
  fallbackMode: "earliest",
});

process.once("SIGTERM", async () => {
  await stream.close();
  await consumer.close();
  await producer.close();
  process.exit(0);
});

for await (const message of stream) {
  await producer.send({ messages: [{ topic: "greetings", value: `hello ${message.value}` }] });
}
