import { z } from "zod";

// The page's Content-Security-Policy forbids evaluated code. Must be imported first: schemas read this when they are
// created.
z.config({ jitless: true });
