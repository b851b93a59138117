/** Processor time for rendering or checking one template, in milliseconds, without the start of its process. */
export const renderCpuMs = 100;
/** JavaScript heap of the rendering process, in MiB. */
export const renderHeapMib = 64;
/**
 * The words for what needs more than that heap.
 * @param field what needs it, as its author names it
 */
export const tooMuchMemory = (field: string): string =>
  `${field}: need more than ${renderHeapMib} MiB of memory: make them, or what they make of the event, smaller`;
/**
 * Wall-clock time for one template, in milliseconds. Templates wait for nothing, so only a process that gets no
 * processor time for seconds reaches this limit (on an overloaded machine, or if it was stopped).
 */
export const renderWallMs = 10_000;
/** Wall-clock time in which a process must be ready to render, in milliseconds. */
export const startWallMs = 30_000;
