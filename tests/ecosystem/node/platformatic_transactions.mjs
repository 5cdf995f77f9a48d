// Greets with @platformatic/kafka, exactly once: each greeting, and the offset of its name, in a transaction.
// Usage: platformatic_transactions.mjs BROKER
import { Consumer, Producer, stringDeserializers, stringSerializers } from "@platformatic/kafka";

const bootstrapBrokers = [process.argv[2]];
const producer = new Producer({
  clientId: "greeter",
  bootstrapBrokers,
  serializers: stringSerializers,
  idempotent: true,
  transactionalId: "greeter",
  // By default it says that it is producer 0, epoch 0, and in its second life Kafka takes it to be fenced.
  producerId: -1n,
  producerEpoch: -1,
});
const consumer = new Consumer({
  groupId: "greeters",
  clientId: "greeter",
  bootstrapBrokers,
  deserializers: stringDeserializers,
});
const stream = await consumer.consume({
  autocommit: false,
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
  const transaction = await producer.beginTransaction();
  await transaction.addConsumer(consumer);
  await transaction.send({ messages: [{ topic: "greetings", value: `hello ${message.value}` }] });
  await transaction.addOffset(message);
  await transaction.commit();
}
