import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { encodeGif } from "../../scripts/pictures/gif.ts";
import { readPng, writePng, type Picture } from "../../scripts/pictures/png.ts";
import { randomOf } from "../random.ts";
import { launchBrowser } from "../web/browser.ts";

/** What the README's film is made by, read by a browser's own decoder. */
let browser: Browser;
let page: Page;

beforeAll(async () => {
  browser = await launchBrowser();
  page = await browser.newPage({ viewport: { width: 300, height: 200 } });
  // Decoders are for secure addresses only.
  await page.route("https://film.example/", (route) => route.fulfill({ contentType: "text/html", body: "<body>" }));
  await page.goto("https://film.example/");
});
afterAll(() => browser?.close());

interface Shown {
  readonly ms: number;
  readonly pixels: readonly number[];
}

/** What a browser shows of a film: the whole picture after each frame. */
async function shown(file: Buffer, type = "image/gif"): Promise<Shown[]> {
  return page.evaluate<Shown[]>(`(async () => {
    const bytes = Uint8Array.from(atob(${JSON.stringify(file.toString("base64"))}), (character) => character.charCodeAt(0));
    const decoder = new ImageDecoder({ data: bytes, type: "${type}" });
    await decoder.tracks.ready;
    const found = [];
    for (let index = 0; index < decoder.tracks.selectedTrack.frameCount; index += 1) {
      const { image } = await decoder.decode({ frameIndex: index, completeFramesOnly: true });
      const canvas = new OffscreenCanvas(image.displayWidth, image.displayHeight);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      const pixels = Array.from({ length: data.length / 4 }, (_, at) => (data[at * 4] << 16) | (data[at * 4 + 1] << 8) | data[at * 4 + 2]);
      found.push({ ms: image.duration / 1000, pixels });
    }
    return found;
  })()`);
}

function picture(width: number, height: number, colourAt: (at: number) => number): Picture {
  return { width, height, pixels: Uint32Array.from({ length: width * height }, (_, at) => colourAt(at)) };
}

test("a browser shows each frame as it was, for as long as was said", async () => {
  const random = randomOf(7);
  const colours = Array.from({ length: 200 }, () => Math.floor(random() * 0x1000000));
  const noise = () => picture(120, 90, () => colours[Math.floor(random() * colours.length)] ?? 0);
  const first = noise();
  // One pixel, nothing, and all of it differ from the frame before.
  const second = { ...first, pixels: first.pixels.with(5_000, 0xff8800) };
  const frames = [first, second, second, noise(), picture(120, 90, () => 0x17599f)];
  const found = await shown(encodeGif(frames.map((each, index) => ({ picture: each, ms: 100 * (index + 1) }))));
  expect(found.map(({ ms }) => ms)).toEqual([100, 200, 300, 400, 500]);
  for (const [index, each] of frames.entries())
    expect(found[index]?.pixels, `frame ${index}`).toEqual([...each.pixels]);
});

test("of more colours than fit, a rare one that is far from all others keeps its own", async () => {
  const greys = picture(64, 64, (at) => (at === 77 ? 0x00c040 : (at % 240) * 0x010101 + (at >> 8)));
  const [found] = await shown(encodeGif([{ picture: greys, ms: 100 }]));
  expect(found?.pixels[77]).toBe(0x00c040);
  const off = greys.pixels.map((colour, at) => Math.abs((colour & 255) - ((found?.pixels[at] ?? 0) & 255)));
  expect(Math.max(...off)).toBeLessThan(16);
});

test("a picture of at most 256 colours is written as it is", async () => {
  const colours = picture(33, 21, (at) => ((at % 256) << 8) | (255 - (at % 256)));
  const [found] = await shown(writePng(colours), "image/png");
  expect(found?.pixels).toEqual([...colours.pixels]);
});

test("a screenshot is read as it was painted", async () => {
  const body = "<body style='margin:0;background:#fdf6e3'><div style='width:37px;height:11px;background:#17599f'>";
  await page.setContent(`${body}</div><p>Words 🛒 of many shades</p>`);
  const { width, height, pixels } = readPng(await page.screenshot());
  expect([width, height]).toEqual([300, 200]);
  expect(pixels[0]).toBe(0x17599f);
  expect(pixels[10 * 300 + 36]).toBe(0x17599f);
  expect(pixels[10 * 300 + 37]).toBe(0xfdf6e3);
  expect(pixels[11 * 300]).toBe(0xfdf6e3);
  expect(pixels.at(-1)).toBe(0xfdf6e3);
});
