// Greets with KafkaJS, as its page "getting started" has it: eachMessage of a consumer, and a producer.
// Usage: kafkajs_greet.mjs BROKER
import kafkajs from "kafkajs";

const kafka = new kafkajs.Kafka({ clientId: "greeter", brokers: [process.argv[2]] });
const producer = kafka.producer();
const consumer = kafka.consumer({ groupId: "greeters" });

process.once("SIGTERM", async () => {
  await consumer.disconnect();
  await producer.disconnect();
  process.exit(0);
});

await producer.connect();
await consumer.connect();
await consumer.subscribe({ topic: "names", fromBeginning: true });
await consumer.run({
  eachMessage: async ({ message }) => {
    await producer.send({ topic: "greetings", messages: [{ value: `hello ${message.value}` }] });
  },
});
