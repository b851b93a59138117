import { networkGoals } from "./goals/network.ts";
import { secretGoals } from "./goals/secrets.ts";
import { describeGoals } from "./suite.ts";

/** The boundary is not the harness's: what Offstage's own agent can't reach, another one can't either. */
const some = new Set(["server-environment", "loopback-service"]);

describeGoals(
  [...secretGoals, ...networkGoals].filter(({ id }) => some.has(id)),
  { variables: { OFFSTAGE_DEFAULT_AGENT: "opencode:scripted" } },
);
