import type { FastifyRequest } from "fastify";
import { NotFoundError } from "../../domain/errors/errors.ts";
import { withoutKey } from "./auth.ts";
import type { App } from "./context.ts";
import { MethodNotAllowedError } from "./errors.ts";

/** Distinguishes an unknown path (404) from a known path with a wrong method (405). */
export interface Methods {
  /**
   * For requests that matched a path with an id, such as GET /session/create, where "create" is not an id.
   * @throws MethodNotAllowedError
   */
  check(request: FastifyRequest): void;
  /**
   * For requests that matched nothing.
   * @throws MethodNotAllowedError
   * @throws NotFoundError
   */
  refuse(request: FastifyRequest): never;
}

/** Records the methods of every path. Call it before any route is added. */
export function collectMethods(app: App): Methods {
  const methodsOf = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    const methods = methodsOf.get(url) ?? new Set();
    methodsOf.set(url, methods);
    for (const each of [method].flat()) methods.add(each);
  });

  function allowedAt(path: string): string[] {
    const exactly = methodsOf.get(path);
    if (exactly !== undefined) return [...exactly];
    return [...methodsOf].flatMap(([pattern, methods]) => (matches(pattern, path) ? [...methods] : []));
  }

  function refuseOther(request: FastifyRequest, allowed: readonly string[]): void {
    if (allowed.length === 0 || allowed.includes(request.method)) return;
    const allow = [...new Set(allowed)].toSorted().join(", ");
    const requested = `${request.method} ${withoutKey(request.url).slice(0, 200)}`;
    throw new MethodNotAllowedError(`there is no ${requested}: use ${allow}`, allow);
  }

  return {
    check(request) {
      if (request.routeOptions.url?.includes("/:id") !== true) return;
      refuseOther(request, [...(methodsOf.get(pathOf(request)) ?? [])]);
    },
    refuse(request) {
      refuseOther(request, allowedAt(pathOf(request)));
      throw new NotFoundError(`there is no ${request.method} ${withoutKey(request.url).slice(0, 200)}: see /reference`);
    },
  };
}

/** The request's path, without its query and a trailing slash. */
export function pathOf({ url }: FastifyRequest): string {
  return url.replace(/[?#].*$/su, "").replace(/(?<=.)\/$/u, "");
}

/** Whether a path matches the router's pattern: `:name` matches one segment, a final `*` any rest. */
function matches(pattern: string, path: string): boolean {
  const segments = pattern.split("/");
  const parts = path.split("/");
  const rest = segments.at(-1) === "*";
  if (rest ? parts.length < segments.length : parts.length !== segments.length) return false;
  return segments.every((part, index) => {
    if (rest && index === segments.length - 1) return true;
    return part.startsWith(":") ? parts[index] !== "" : part === parts[index];
  });
}
