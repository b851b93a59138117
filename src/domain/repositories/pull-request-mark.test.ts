import { expect, test } from "vitest";
import { readMark, withMark } from "./pull-request-mark.ts";

const mark = { sessionId: "0198c1f0-0000-7000-8000-000000000001", sha: "a".repeat(40) };

test("a mark is read as it was written, also in a body with additions", () => {
  expect(readMark(withMark("Words", mark))).toEqual(mark);
  expect(readMark(`${withMark("Words", mark)}\n\nMore words`)).toEqual(mark);
  const sha256 = { ...mark, sha: "b".repeat(64) };
  expect(readMark(withMark("", sha256))).toEqual(sha256);
});

test("a mark in the agent's own words does not stand for Offstage's", () => {
  const other = withMark("", { ...mark, sessionId: "0198c1f0-0000-7000-8000-00000000000f" });
  expect(readMark(withMark(`I did this.\n${other}`, mark))).toEqual(mark);
});

test("a body without a mark has none", () => {
  expect(readMark("Words <!-- offstage -->")).toBeNull();
  expect(readMark("")).toBeNull();
});

test("a mark is read as Bitbucket delivers it, and none that has no line of its own", () => {
  const line = `[//]: # (offstage session=${mark.sessionId} commit=${mark.sha})`;
  expect(readMark(`Words\n\n\n${line}`)).toEqual(mark);
  expect(readMark(`Words\r\n\r\n${line}\r\n\r\nMore words`)).toEqual(mark);
  expect(readMark(`See ${line}`)).toBeNull();
  expect(readMark(`${line} it says`)).toBeNull();
});
