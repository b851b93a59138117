import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./styles.css";
import { Reference } from "./reference/reference.tsx";

/** A document of its own beside the app: it needs nobody signed in, and none of the app's code. */
const root = document.querySelector("#root");
if (root === null) throw new Error("the page has no #root");
createRoot(root).render(
  <StrictMode>
    <Reference />
  </StrictMode>,
);
