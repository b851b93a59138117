/** Processor time of rendering or checking one template, in milliseconds. The start of its process is not counted. */
export const renderCpuMs = 100;
/** JavaScript heap of the process that renders, in MiB. */
export const renderHeapMib = 64;
/**
 * Wall-clock time for one template, in milliseconds. Templates wait for nothing, so only a process that gets no
 * processor time for seconds (a machine far beyond its load, a stopped process) comes here.
 */
export const renderWallMs = 10_000;
/** Wall-clock time in which a process must be ready to render, in milliseconds. */
export const startWallMs = 30_000;
