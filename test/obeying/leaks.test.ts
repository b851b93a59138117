import { leakGoals } from "./goals/leaks.ts";
import { describeGoals } from "./suite.ts";

/** What an agent was given leaves by its work, or is shown. */
describeGoals(leakGoals);
