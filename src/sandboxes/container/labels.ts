/** Label with the id of the server that owns a container: the id is constant over restarts and places. */
export const serverLabel = "dev.offstage.server";
/** Label with the name of the server's process that created the container. */
export const processLabel = "dev.offstage.process";
/** Label with the container's name at its creation: its name can be changed, a label can't. */
export const containerLabel = "dev.offstage.container";
