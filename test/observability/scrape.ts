/** One line of what Prometheus reads (https://prometheus.io/docs/instrumenting/exposition_formats/). */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Scrape {
  readonly samples: readonly Sample[];
  /** The value of the one sample that has this name and these labels; undefined if there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

export function readScrape(text: string): Scrape {
  const samples = text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(sampleOf);
  return {
    samples,
    value: (name, labels = {}) =>
      samples.find(
        (sample) =>
          sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
      )?.value,
  };
}

function sampleOf(line: string): Sample {
  const [, name = "", inBraces = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)$/u.exec(line) ?? [];
  if (name === "") throw new Error(`not a line of metrics: ${line}`);
  const labels = [...inBraces.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/gu)].map(([, label, text]) => [label, text]);
  return { name, labels: Object.fromEntries(labels) as Record<string, string>, value: Number(value) };
}
