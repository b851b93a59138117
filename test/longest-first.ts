import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * What takes longest, by the beginnings of the paths, the longest first: a file that runs for minutes must not begin when the
 * others are done. If nothing is remembered of an earlier run, Vitest goes by the size of a file, and the suites of some lines
 * that take minutes come last.
 */
const longest = [
  "test/chaos/",
  "src/domain/linear-time",
  "test/forges/loop-acceptance",
  "test/web/pages",
  "test/end-to-end/",
  "test/obeying/",
  "test/forges/",
  "test/sandboxes/",
  "test/other-agents/",
  "test/registries/",
  "test/api/fuzz/",
  "test/gateway/",
  "test/escape/",
  "test/worker/",
  "test/observability/",
  "test/database/",
  "test/outbound/",
  "test/web/",
];

/** Begins with the files that take longest, whatever their project is; otherwise in Vitest's own order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const rank = ({ moduleId }: TestSpecification): number => {
      const path = relative(root, moduleId).replaceAll("\\", "/");
      const found = longest.findIndex((beginning) => path.startsWith(beginning));
      return found === -1 ? longest.length : found;
    };
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}
