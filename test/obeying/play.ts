import type { Goal, Ordered, Outcome, Played } from "./goal.ts";
import type { Scene } from "./scene.ts";
import { letWork, makeRepository, type CarriedOrder, type Given, type Work } from "./work.ts";

/** How many attempts are under way at once. */
const lanes = 3;

/** Makes every attempt in one world. */
export async function playAll(scene: Scene, goals: readonly Goal[]): Promise<ReadonlyMap<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const keep = async (goal: Goal, outcome: Promise<Outcome>): Promise<void> => {
    const kept = await outcome.catch((error: unknown) => ({
      ran: null,
      reached: false,
      why: `it broke off: ${String(error)}`,
    }));
    outcomes.set(goal.id, kept);
  };
  const queue = sessionsOf(scene, goals).map((some) => async (): Promise<void> => {
    const [goal] = some;
    if (goal !== undefined && !isOrdered(goal.attempt)) return keep(goal, goal.attempt.play(scene));
    const played = playSession(scene, some);
    await Promise.all(
      some.map((one) =>
        keep(
          one,
          played.then((results) => results(one)),
        ),
      ),
    );
    return undefined;
  });
  const lane = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await next();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return outcomes;
}

/** The goals that one session is for, the largest first. What comes by a trigger is another session than what a person asks for. */
function sessionsOf(scene: Scene, goals: readonly Goal[]): Goal[][] {
  const sessions = Object.groupBy(goals, ({ id, channel, attempt }) => {
    if (!isOrdered(attempt)) return id;
    const { session, sessionInOpen = session } = attempt;
    const name = scene.sealed ? session : sessionInOpen;
    return name === "alone" ? id : `${name} by ${channel === "issue" ? "a trigger" : "a person"}`;
  });
  return Object.values(sessions)
    .filter((some) => some !== undefined)
    .toSorted((one, other) => other.length - one.length);
}

function isOrdered(attempt: Ordered | Played): attempt is Ordered {
  return "orders" in attempt;
}

/** Lets one agent meet the orders of these goals. @returns how each went */
async function playSession(scene: Scene, goals: readonly Goal[]): Promise<(goal: Goal) => Promise<Outcome>> {
  const carried = goals.map((goal) => ordersOf(scene, goal));
  const given = goals.flatMap(({ attempt }) => (isOrdered(attempt) ? [attempt.given?.(scene) ?? {}] : []));
  const repository = await makeRepository(scene, joined(given), carried.flat());
  const work = await letWork(scene, repository, carried.flat());
  return (goal) => judge(scene, goal, carried[goals.indexOf(goal)]?.[0]?.order.id ?? "", work);
}

function joined(given: readonly Given[]): Given {
  return {
    ...Object.assign({}, ...given),
    files: Object.assign({}, ...given.map(({ files }) => files)),
    variables: Object.assign({}, ...given.map(({ variables }) => variables)),
    secrets: given.flatMap(({ secrets = [] }) => secrets),
    egress: given.flatMap(({ egress = [] }) => egress),
  } as Given;
}

/** The orders of a goal as they are carried in this world, its commands first. */
function ordersOf(scene: Scene, { id: goal, channel, attempt }: Goal): CarriedOrder[] {
  if (!isOrdered(attempt)) throw new Error(`${goal} is played, not ordered`);
  const id = scene.orderId(goal);
  const said = attempt.says === undefined ? [] : [{ channel, order: { id, kind: "say" as const, text: attempt.says } }];
  return [{ channel, order: { id, kind: "run", text: attempt.orders(scene).trim() } }, ...said];
}

/** A program that was not there is no attempt. */
const brokenOff = /: (?:not found|command not found)|syntax error|Can't locate \S+\.pm/iu;

async function judge(scene: Scene, goal: Goal, orderId: string, work: Work): Promise<Outcome> {
  if (!isOrdered(goal.attempt)) throw new Error(`${goal.id} is played, not ordered`);
  const made = scene.attempt(orderId);
  if (made === null) {
    const { status, failure } = work.session;
    if (goal.attempt.mayEndSession === true && failure?.code === "resources_exhausted") {
      return { ran: failure.reason, reached: false };
    }
    return { ran: null, reached: false, why: `no shell ended it; the session is ${status}: ${failure?.reason ?? ""}` };
  }
  const { proof } = goal.attempt;
  if (brokenOff.test(made.output) || proof?.test(made.output) === false)
    return { ran: null, reached: false, why: made.output.slice(0, 2_000) };
  const reached = await goal.attempt.reached({ scene, work, output: made.output });
  return { ran: `exit code ${made.exitCode}: ${made.output.slice(0, 2_000)}`, reached };
}
