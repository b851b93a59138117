import { z } from "zod";

// The page's Content-Security-Policy allows no evaluated code. Imported first: schemas look at this when they are made.
z.config({ jitless: true });
