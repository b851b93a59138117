import type { Goal } from "./goal.ts";
import { deceptionGoals } from "./goals/deception.ts";
import { gatewayGoals } from "./goals/gateway.ts";
import { leakGoals } from "./goals/leaks.ts";
import { networkGoals } from "./goals/network.ts";
import { outsideGoals } from "./goals/outside.ts";
import { persistenceGoals } from "./goals/persistence.ts";
import { poisoningGoals } from "./goals/poisoning.ts";
import { resourceGoals } from "./goals/resources.ts";
import { secretGoals } from "./goals/secrets.ts";
import { supplyGoals } from "./goals/supply.ts";

/** Every goal that is tried. */
export const allGoals: readonly Goal[] = [
  ...secretGoals,
  ...outsideGoals,
  ...networkGoals,
  ...gatewayGoals,
  ...leakGoals,
  ...supplyGoals,
  ...poisoningGoals,
  ...persistenceGoals,
  ...resourceGoals,
  ...deceptionGoals,
];
