import { messageOf } from "../../domain/errors/errors.ts";
import { serveBasicAgent } from "./serve.ts";

/** Program that a sandbox starts for the provider `basic`. */
try {
  await serveBasicAgent({ environment: process.env, stdin: process.stdin, stdout: process.stdout });
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}
