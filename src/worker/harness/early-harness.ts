import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startHarness, type RunningHarness } from "../../agents/acp/acp.ts";
import type { WarmGateway } from "../../gateway/process/process.ts";
import type { LaterFolders, SandboxedProcess } from "../../sandboxes/sandbox.ts";
import type { AttemptServices } from "../attempt/attempt.ts";
import { namedModels } from "../attempt/model-budget.ts";
import { mustGit } from "../git/git.ts";
import type { EarlyFolders } from "../disk/session-folders.ts";
import { writeHarnessFiles } from "../sandboxed/harness-files.ts";
import { launchKey, placeLaunch, type Launch, type LaunchServices, type PlacedLaunch } from "./launch.ts";

/** Services of the worker for starting a harness early. */
export type EarlyServices = LaunchServices &
  Pick<
    AttemptServices,
    | "folders"
    | "sandbox"
    | "gateways"
    | "socketDirectory"
    | "modelPermits"
    | "prices"
    | "allowedModels"
    | "sandboxAuthorities"
  >;

/** A harness that runs in its own sandbox before its turn is known. It sees nothing of any session. */
export interface EarlyHarness {
  readonly id: string;
  /** Digest of its launch. */
  readonly key: string;
  readonly launch: PlacedLaunch;
  readonly folders: EarlyFolders;
  readonly gateway: Pick<WarmGateway, "adopt">;
  readonly harness: RunningHarness;
  /** Its sandbox's usage now; null if it does not run, or that is unknown. */
  readonly usage: SandboxedProcess["usage"];
  /** Settles when every process in its sandbox has ended. */
  readonly exited: Promise<unknown>;
  /** Whether its process or its gateway has ended. */
  hasEnded(): boolean;
  /** Makes the session's folders visible in its sandbox. @throws Error if that fails */
  attach(later: LaterFolders): Promise<void>;
  /** Ends it, and its gateway unless a session has that; its folders stay. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Folders in which a harness is warmed up. Of each it does much once, so that its code for the next is compiled after some; two are
 * repositories, as a session's are.
 */
const warmUpFolders = ["folder", "repository", "another"];

/** Makes the folders for that, below another. */
async function makeWarmUpFolders(
  idle: string,
  { author }: Pick<EarlyServices, "author">,
  signal: AbortSignal,
): Promise<void> {
  for (const name of warmUpFolders) {
    const options = { cwd: join(idle, name), signal };
    await mkdir(options.cwd, { recursive: true });
    if (name === "folder") continue;
    await writeFile(join(options.cwd, "README.md"), `# ${name}\n`);
    await mustGit(["init", "--quiet"], options);
    await mustGit(["add", "README.md"], options);
    const identity = ["-c", `user.name=${author.name}`, "-c", `user.email=${author.email}`];
    await mustGit([...identity, "commit", "--quiet", "--message", name], options);
  }
}

/** Makes the folders of a sandbox, and gives them to its user, before any program of it can be there. */
export async function makeFolders(
  { sandbox }: Pick<EarlyServices, "sandbox">,
  make: () => Promise<EarlyFolders>,
  fill: (idle: string) => Promise<void> = () => Promise.resolve(),
): Promise<EarlyFolders> {
  const folders = await make();
  await sandbox.makeWritable(folders.home);
  await fill(folders.idle);
  await sandbox.makeWritable(folders.idle);
  return folders;
}

/**
 * Starts a harness in a sandbox with an empty home. It can reach nothing but the gateway's own answers.
 * @param launch without registries: their certificates would have to be there
 * @param folders as `makeFolders` makes them
 * @param options.signal ends its start, and not what was started
 * @param options.isWarm whether it is to be warmed up: sessions go first then if both want the processor, until it is a session's
 * @throws Error if it can't be started
 */
export async function startEarly(
  services: EarlyServices,
  launch: Launch,
  folders: EarlyFolders,
  { signal, isWarm = false }: { readonly signal: AbortSignal; readonly isWarm?: boolean },
): Promise<EarlyHarness> {
  const { sandbox, gateways, socketDirectory, modelPermits } = services;
  let gateway: WarmGateway | null = null;
  let ended = false;
  let isAdopted = false;
  try {
    const task = {
      directory: socketDirectory,
      models: services.models,
      permits: modelPermits,
      labels: { prices: services.prices, models: namedModels(services) },
      authorities: services.sandboxAuthorities,
    };
    const opened = (gateway = await gateways.openWarm(task, () => (ended = true)));
    const placed = placeLaunch(launch, services, folders.home, opened);
    const place = { workspace: folders.idle, home: folders.home, disk: folders.disk };
    // In an empty home there is nothing to take a part out of.
    const files = Object.entries(placed.files).filter(([, file]) => typeof file === "string" || !isRemoval(file));
    await writeHarnessFiles(sandbox, { ...place, signal }, Object.fromEntries(files));
    let child: SandboxedProcess | null = null;
    const harness = startHarness({
      launch: placed.harness,
      start: (_launch, over) => {
        child = sandbox.start({
          ...placed.request,
          ...place,
          standsBack: isWarm,
          gateway: opened.socket,
          // Not the caller's signal, which bounds its start: it ends when it is stopped.
          signal: over,
        });
        return child;
      },
    });
    void harness.exited.then(() => (ended = true));
    const { attach, usage } = child as unknown as SandboxedProcess;
    return {
      id: folders.id,
      key: launchKey(launch, services),
      launch: placed,
      folders,
      gateway: {
        adopt(...session) {
          isAdopted = true;
          return opened.adopt(...session);
        },
      },
      harness,
      usage,
      exited: harness.exited,
      hasEnded: () => ended,
      async attach(later) {
        if (attach === undefined) throw new Error("this sandbox can't be given folders later");
        await attach(later);
      },
      async stop() {
        await harness.stop();
        if (isAdopted) return;
        isAdopted = true;
        await opened.close();
      },
    };
  } catch (error) {
    await gateway?.close();
    throw error;
  }
}

function isRemoval(file: object): boolean {
  return "part" in file && file.part === "";
}

/** Has a harness that was started early run a trial session, so that its code is compiled. @throws Error if it fails */
async function warmUp({ harness, folders }: EarlyHarness): Promise<void> {
  for (const name of warmUpFolders) await harness.warmUp(join(folders.idle, name));
}

/**
 * Starts a harness in separate folders, and has it do what it does in a session, so that its code is compiled.
 * @throws Error if that fails; nothing is left then
 */
export async function startWarm(services: EarlyServices, launch: Launch, signal: AbortSignal): Promise<EarlyHarness> {
  const folders = await services.folders.beginEarly();
  let early: EarlyHarness | null = null;
  try {
    await makeFolders(
      services,
      () => Promise.resolve(folders),
      (idle) => makeWarmUpFolders(idle, services, signal),
    );
    early = await startEarly(services, launch, folders, { signal, isWarm: true });
    const over = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    signal.throwIfAborted();
    await Promise.race([warmUp(early), over]);
    return early;
  } catch (error) {
    await early?.stop();
    await services.folders.removeEarly(folders);
    throw error;
  }
}
