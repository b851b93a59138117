import type { Page } from "playwright-core";

/** Runs in the page, which can decode pictures. */
const script = `async ([one, other]) => {
  const read = async (data) => {
    const image = new Image();
    image.src = "data:image/png;base64," + data;
    await image.decode();
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const { data: bytes } = context.getImageData(0, 0, image.width, image.height);
    const isDark = (x, y) => bytes[(y * image.width + x) * 4] < 140;
    return { width: image.width, height: image.height, isDark };
  };
  const near = [-1, 0, 1].flatMap((dx) => [-1, 0, 1].map((dy) => [dx, dy]));
  const farFrom = ({ width, height, isDark }, { isDark: isDarkThere }) => {
    let far = 0;
    for (let y = 1; y < height - 1; y += 1) {
      for (let x = 1; x < width - 1; x += 1) {
        if (isDark(x, y) && !near.some(([dx, dy]) => isDarkThere(x + dx, y + dy))) far += 1;
      }
    }
    return far;
  };
  const pictures = [await read(one), await read(other)];
  return farFrom(pictures[0], pictures[1]) + farFrom(pictures[1], pictures[0]);
}`;

/** How many dark pixels of each of two pictures have no dark one of the other within a pixel. */
export async function farFromEachOther(page: Page, pictures: readonly Buffer[]): Promise<number> {
  const both = pictures.map((picture) => picture.toString("base64"));
  return page.evaluate(`(${script})(${JSON.stringify(both)})`);
}
