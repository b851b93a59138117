import { deceptionGoals } from "./goals/deception.ts";
import { poisoningGoals } from "./goals/poisoning.ts";
import { supplyGoals } from "./goals/supply.ts";
import { describeGoals } from "./suite.ts";

/** What the work of a session is to others, and to sessions after it. */
describeGoals([...deceptionGoals, ...poisoningGoals, ...supplyGoals], { variables: { OFFSTAGE_CHECKPOINT_MB: "0" } });
