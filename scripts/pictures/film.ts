import type { Page } from "playwright-core";
import { encodeGif } from "./gif.ts";
import { readPng } from "./png.ts";

/** Longest time that a picture stays while something happens by itself, in ms: waits are cut. */
const longestMs = 700;
/** Longest time that what happens by itself takes in the film, in ms: on a busy machine the whole of it is shown faster. */
const followedMs = 14_000;
/** Between two pictures of what happens by itself, in ms. */
const pauseMs = 100;
/** Shortest: browsers show shorter ones for longer. */
const shortestMs = 60;

/** A film of a page, of the pictures in which something is new. */
export interface Film {
  /** Takes a picture, which stays for a time. */
  take(ms: number): Promise<void>;
  /** Takes pictures until what is waited for is there; each stays as long as it did, but for long waits. */
  follow(isOver: () => Promise<boolean>): Promise<void>;
  /** The film as a GIF. */
  gif(): Buffer;
}

/** Begins a film of a page. */
export function createFilm(page: Page): Film {
  const frames: { readonly png: Buffer; ms: number }[] = [];
  const picture = (): Promise<Buffer> => page.screenshot({ animations: "disabled", caret: "initial" });

  function add(png: Buffer, ms: number): void {
    const last = frames.at(-1);
    if (last?.png.equals(png) === true) last.ms += ms;
    else frames.push({ png, ms });
  }

  return {
    take: async (ms) => add(await picture(), ms),
    async follow(isOver) {
      const followed: { readonly png: Buffer; readonly at: number }[] = [];
      for (let over = false; !over;) {
        over = await isOver();
        // Agents have less of the processor than all else: pictures one upon the other would leave them none.
        await page.waitForTimeout(pauseMs);
        const png = await picture();
        if (followed.at(-1)?.png.equals(png) !== true) followed.push({ png, at: performance.now() });
      }
      const lengths = followed.map(({ at }, index) => Math.min(longestMs, (followed[index + 1]?.at ?? at) - at));
      const factor = Math.min(1, followedMs / lengths.reduce((sum, ms) => sum + ms, 0));
      let left = 0;
      for (const [index, { png }] of followed.entries()) {
        left += (lengths[index] ?? 0) * factor;
        if (left < shortestMs) continue;
        add(png, left);
        left = 0;
      }
    },
    gif: () => encodeGif(frames.map(({ png, ms }) => ({ picture: readPng(png), ms }))),
  };
}
