/** Whose a container is: the server by an id that it keeps over restarts, wherever it runs, and the process that made it. */
export const serverLabel = "dev.offstage.server";
export const processLabel = "dev.offstage.process";
/** Which container it is, whatever it is called by now: its name can be changed, a label can't. */
export const containerLabel = "dev.offstage.container";
