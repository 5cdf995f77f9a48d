// A service of NestJS that answers over Kafka, as its page on microservices has it; without decorators.
// Usage: nest_service.mjs BROKER
import "reflect-metadata";
import { Controller, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { MessagePattern, Payload, Transport } from "@nestjs/microservices";

class Greeter {
  greet(name) {
    return `hello ${name}`;
  }
}
Controller()(Greeter);
Payload()(Greeter.prototype, "greet", 0);
const method = Object.getOwnPropertyDescriptor(Greeter.prototype, "greet");
MessagePattern("greet")(Greeter.prototype, "greet", method);

class Service {}
Module({ controllers: [Greeter] })(Service);

const service = await NestFactory.createMicroservice(Service, {
  transport: Transport.KAFKA,
  options: { client: { brokers: [process.argv[2]] }, subscribe: { fromBeginning: true } },
});
service.enableShutdownHooks();
await service.listen();
