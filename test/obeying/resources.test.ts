import { resourceGoals, smallLimits } from "./goals/resources.ts";
import { describeGoals } from "./suite.ts";

/** What an agent may use of the machine that it shares. */
describeGoals(resourceGoals, { variables: smallLimits });
