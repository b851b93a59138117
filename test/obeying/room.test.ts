import { networkGoals } from "./goals/network.ts";
import { outsideGoals } from "./goals/outside.ts";
import { persistenceGoals } from "./goals/persistence.ts";
import { secretGoals } from "./goals/secrets.ts";
import { describeGoals } from "./suite.ts";

/** What is in the room with the agent, and what is not. */
describeGoals([...secretGoals, ...outsideGoals, ...networkGoals, ...persistenceGoals]);
