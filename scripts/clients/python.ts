import { snakeCase } from "../../src/description/snippets.ts";
import type { Operation, Parameter, Schema } from "../../src/description/operations.ts";

const head = `# Written by scripts/build-clients.ts from the API's description: change that, and run it.
"""Every operation of the API, by the nouns of their paths."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Union
from urllib.parse import quote

from ._send import Send


def _part(value: str) -> str:
    return quote(value, safe="")


`;

/** The module of the Python client that has a class for each noun, and a method for each operation. */
export function pythonModule(operations: readonly Operation[]): string {
  const nouns = Map.groupBy(operations, ({ noun }) => noun);
  const classes = [...nouns].map(([noun, all]) => classOf(noun, all));
  const fields = [...nouns.keys()].map((noun) => `        self.${snakeCase(noun)} = ${className(noun)}(send)`);
  const all = `class Operations:\n    """The operations, by noun."""\n\n    def __init__(self, send: Send) -> None:\n${fields.join("\n")}\n`;
  return `${head}${[...classes, all].join("\n\n")}`;
}

const className = (noun: string): string => `_${noun.charAt(0).toUpperCase()}${noun.slice(1)}`;

function classOf(noun: string, operations: readonly Operation[]): string {
  const methods = operations.map(methodOf).join("\n");
  return `class ${className(noun)}:\n    def __init__(self, send: Send) -> None:\n        self._send = send\n\n${methods}`;
}

function methodOf(operation: Operation): string {
  const { name, method, path, pathParameters, body, query, isIdempotent, summary, answer } = operation;
  const needed = query.filter(({ required }) => required === true);
  const optional = query.filter(({ required }) => required !== true);
  const named = [
    ...needed.map((parameter) => `${snakeCase(parameter.name)}: ${typeOf(parameter.schema)}`),
    ...optional.map((parameter) => `${snakeCase(parameter.name)}: Optional[${typeOf(parameter.schema)}] = None`),
    ...(isIdempotent ? ["idempotency_key: Optional[str] = None"] : []),
  ];
  const parameters = [
    "self",
    ...pathParameters.map((parameter) => `${snakeCase(parameter.name)}: str`),
    ...(body === null ? [] : [`body: Mapping[str, Any]${operation.isBodyRequired ? "" : " = {}"}`]),
    ...(named.length === 0 ? [] : ["*", ...named]),
  ];
  const target =
    pathParameters.length === 0
      ? JSON.stringify(path)
      : `f${JSON.stringify(path.replaceAll(/\{(\w+)\}/gu, (_all, id: string) => `{_part(${snakeCase(id)})}`))}`;
  const given = [
    JSON.stringify(method),
    target,
    ...(body === null ? [] : ["body=body"]),
    ...(query.length === 0 ? [] : [`query={${query.map(entry).join(", ")}}`]),
    ...(isIdempotent ? ["idempotency_key=idempotency_key", "creates=True"] : []),
    ...(answer === null ? ["is_json=False"] : []),
  ];
  return [
    `    def ${snakeCase(name)}(${parameters.join(", ")}) -> ${answer === null ? "bytes" : "Dict[str, Any]"}:`,
    `        """${summary.replaceAll('"', "'")}."""`,
    `        return self._send(${given.join(", ")})`,
    "",
  ].join("\n");
}

const entry = ({ name }: Parameter): string => `${JSON.stringify(name)}: ${snakeCase(name)}`;

function typeOf({ type, anyOf = [] }: Schema): string {
  const one = anyOf.find((each) => each.type !== "array");
  if (one !== undefined && anyOf.some((each) => each.type === "array"))
    return `Union[${typeOf(one)}, List[${typeOf(one)}]]`;
  const types: Readonly<Record<string, string>> = {
    integer: "int",
    number: "float",
    boolean: "bool",
    array: "List[Any]",
  };
  return types[typeof type === "string" ? type : (type?.[0] ?? "string")] ?? "str";
}
