import { gatewayGoals } from "./goals/gateway.ts";
import { describeGoals } from "./suite.ts";

/** The one way out that every agent has. */
describeGoals(gatewayGoals);
