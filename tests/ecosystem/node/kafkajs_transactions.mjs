// Greets with KafkaJS, exactly once: each greeting, and the offset of its name, in a transaction.
// Usage: kafkajs_transactions.mjs BROKER
import kafkajs from "kafkajs";

const kafka = new kafkajs.Kafka({ clientId: "greeter", brokers: [process.argv[2]] });
const producer = kafka.producer({ transactionalId: "greeter", maxInFlightRequests: 1, idempotent: true });
const consumer = kafka.consumer({ groupId: "greeters", readUncommitted: false });

process.once("SIGTERM", async () => {
  await consumer.disconnect();
  await producer.disconnect();
  process.exit(0);
});

await producer.connect();
await consumer.connect();
await consumer.subscribe({ topic: "names", fromBeginning: true });
await consumer.run({
  autoCommit: false,
  eachMessage: async ({ topic, partition, message }) => {
    const transaction = await producer.transaction();
    try {
      await transaction.send({ topic: "greetings", messages: [{ value: `hello ${message.value}` }] });
      const offset = (BigInt(message.offset) + 1n).toString();
      await transaction.sendOffsets({
        consumerGroupId: "greeters",
        topics: [{ topic, partitions: [{ partition, offset }] }],
      });
      await transaction.commit();
    } catch (error) {
      await transaction.abort();
      throw error;
    }
  },
});
