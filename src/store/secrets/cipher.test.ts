import { expect, it } from "vitest";
import { ConflictError } from "../../domain/errors/errors.ts";
import { openBytes, sealBytes } from "./cipher.ts";

const key = Buffer.alloc(32, 7);
const place = "11111111-1111-4111-8111-111111111111";

it("opens what stores hold that were written before", () => {
  const sealed = Buffer.from("NVc/AfCGR+FYPk6qpWhOvneth75o7thAkS+6a9nsT98TUsKF+g==", "base64");
  expect(openBytes(key, place, sealed, "changed").toString()).toBe("a värdè");
});

it("opens what it sealed in its own place, and nowhere else", () => {
  const sealed = sealBytes(key, place, Buffer.from("kept"));
  expect(openBytes(key, place, sealed, "changed").toString()).toBe("kept");
  expect(() => openBytes(key, `${place} 1`, sealed, "it was changed")).toThrow(new ConflictError("it was changed"));
});
