import { expect, test } from "vitest";
import { readConfig } from "./config.ts";

const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318/" };

test("headers for the collector are read as OpenTelemetry writes them", () => {
  const headers = "api-key=abc%2Cdef== , x-team = agents";
  expect(readConfig({ ...collector, OTEL_EXPORTER_OTLP_HEADERS: headers }).traces).toEqual({
    endpoint: "http://127.0.0.1:4318",
    headers: { "api-key": "abc,def==", "x-team": "agents" },
    serviceName: "offstage",
    share: 1,
  });
});

test("without a collector there are no traces, whatever else is set", () => {
  expect(readConfig({ OTEL_SERVICE_NAME: "x" }).traces).toBeNull();
});

test.each([
  [{ ...collector, OTEL_EXPORTER_OTLP_HEADERS: "just-a-key" }, "OTEL_EXPORTER_OTLP_HEADERS: must be written"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" }, "OTEL_EXPORTER_OTLP_ENDPOINT: must be an http:// or https://"],
  [{ ...collector, OTEL_TRACES_SAMPLER_ARG: "2" }, "OTEL_TRACES_SAMPLER_ARG"],
  [{ OFFSTAGE_METRICS_TOKEN: "short" }, "OFFSTAGE_METRICS_TOKEN: must be at least 16 characters"],
  [{ OFFSTAGE_METRICS_PORT: "70000" }, "OFFSTAGE_METRICS_PORT"],
])("%j is refused", (variables, sentence) => {
  expect(() => readConfig(variables)).toThrow(sentence);
});
