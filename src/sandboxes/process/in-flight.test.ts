import { expect, test } from "vitest";
import { createInFlightCount } from "./in-flight.ts";

const look = (used: number, left: number, inFlight = 0) => ({
  used: { bytes: used, files: 10, sharedBytes: 0, inFlight },
  room: { bytes: left, files: 1_000, sharedBytes: 0 },
});

test("other processes' writes do not count while no descriptor is in flight", () => {
  const count = createInFlightCount();
  for (const left of [1_000, 700, 300]) expect(count(look(10, left)).bytes).toBe(0);
});

test("what was counted before its descriptor was sent counts still, and no longer once it is closed", () => {
  const count = createInFlightCount();
  count(look(10, 1_000));
  expect(count(look(210, 800))).toMatchObject({ bytes: 0 });
  expect(count(look(10, 800, 1))).toMatchObject({ bytes: 200, files: 1 });
  expect(count(look(10, 1_000))).toMatchObject({ bytes: 0, files: 0 });
});

test("what was written and sent between two looks counts", () => {
  const count = createInFlightCount();
  count(look(10, 1_000));
  expect(count(look(20, 300, 2)).bytes).toBe(690);
});

test("a descriptor that was just received at a look, and is in flight again at the next, is not forgotten", () => {
  const count = createInFlightCount();
  count(look(10, 1_000));
  for (let times = 0; times < 100; times += 1) {
    expect(count(look(10, 300, 1)).bytes).toBe(700);
    expect(count(look(10, 300, 0)).bytes).toBe(700);
  }
});
