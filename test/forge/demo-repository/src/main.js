#!/usr/bin/env node
import { greet } from "./greet.js";

const [name = "world"] = process.argv.slice(2);
console.log(greet(name));
