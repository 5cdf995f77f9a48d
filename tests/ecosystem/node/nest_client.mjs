// Asks a service of NestJS, and prints its answers. Usage: nest_client.mjs BROKER FIRST END
import "reflect-metadata";
import { ClientKafka } from "@nestjs/microservices";
import { lastValueFrom } from "rxjs";

const [broker, first, end] = process.argv.slice(2);
const client = new ClientKafka({
  client: { brokers: [broker] },
  subscribe: { fromBeginning: true },
});
client.subscribeToResponseOf("greet");
await client.connect();
for (let name = Number(first); name < Number(end); name++) {
  console.log(`answer: ${await lastValueFrom(client.send("greet", `name-${name}`))}`);
}
await client.close();
