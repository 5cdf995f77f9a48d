// Does steps of a transaction with KafkaJS, one for each line of JSON, and answers each with a line.
import { createInterface } from "node:readline";
import kafkajs from "kafkajs";

let producer, transaction, patience_ms;

const patient = (work) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(Object.assign(new Error("late"), { name: "(its own timer)" })), patience_ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
};

const steps = {
  open: async ({ servers, transactional_id, patience_ms: patience }) => {
    patience_ms = patience;
    const kafka = new kafkajs.Kafka({ brokers: [servers], logLevel: kafkajs.logLevel.NOTHING });
    producer = kafka.producer({ transactionalId: transactional_id, maxInFlightRequests: 1, idempotent: true });
    await producer.connect();
  },
  begin: async () => { transaction = await producer.transaction(); },
  send: async ({ topic, value }) => patient(transaction.send({ topic, messages: [{ value }] })),
  commit: async () => patient(transaction.commit()),
  abort: async () => patient(transaction.abort()),
  close: async () => { producer.disconnect().catch(() => {}); },
};

const told = (error) => {
  const root = error.cause ?? error;
  const name = root.type ? `${error.name}: ${root.type}` : error.name;
  return { error: name, says: error.retriable ? ["retriable"] : [] };
};

for await (const line of createInterface({ input: process.stdin })) {
  const { step, ...rest } = JSON.parse(line);
  let answer = {};
  try {
    await steps[step](rest);
  } catch (error) {
    answer = told(error);
  }
  console.log(JSON.stringify(answer));
}
