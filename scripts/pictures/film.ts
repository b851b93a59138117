import type { Page } from "playwright-core";
import { encodeGif } from "./gif.ts";
import { readPng } from "./png.ts";

/** Longest time that a picture stays while something happens by itself, in ms: waits are cut. */
const longestMs = 700;
/** Between two pictures of what happens by itself, in ms. */
const pauseMs = 100;
/** Shortest: browsers show shorter ones for longer. */
const shortestMs = 60;

/** A film of a page, of the pictures in which something is new. */
export interface Film {
  /** Takes a picture, which stays for a time. */
  take(ms: number): Promise<void>;
  /** Takes pictures as fast as they come, until what is waited for is there; each stays as long as it did, but for long waits. */
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
      let before = await picture();
      let since = performance.now();
      for (let over = false; !over;) {
        over = await isOver();
        // Agents have less of the processor than all else: pictures one upon the other would leave them none.
        await page.waitForTimeout(pauseMs);
        const next = await picture();
        if (next.equals(before) && !over) continue;
        add(before, Math.min(longestMs, Math.max(shortestMs, performance.now() - since)));
        [before, since] = [next, performance.now()];
      }
      add(before, shortestMs);
    },
    gif: () => encodeGif(frames.map(({ png, ms }) => ({ picture: readPng(png), ms }))),
  };
}
