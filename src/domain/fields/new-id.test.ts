import { expect, test } from "vitest";
import { newId } from "./new-id.ts";
import { shortId } from "./short-id.ts";
import { isUuid } from "./uuid.ts";

test("a new id is a UUID of version 7 that tells its time", () => {
  const id = newId(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/u);
  expect(isUuid(id)).toBe(true);
  expect(Number.parseInt(id.slice(0, 13).replace("-", ""), 16)).toBe(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
});

test("ids sort as their times do, whatever the number of digits", () => {
  const times = [0, 1, 0xff_ffff, Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 1, 0, 0, 0, 1), Date.UTC(9000, 0, 1)];
  const ids = times.map((time) => newId(time));
  expect(ids.toSorted()).toEqual(ids);
});

test("ids of one moment differ, and so do their last eight digits", () => {
  const ids = Array.from({ length: 200 }, () => newId(0));
  expect(new Set(ids).size).toBe(200);
  expect(new Set(ids.map(shortId)).size).toBe(200);
});
