import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./styles.css";
import { Reference } from "./reference/reference.tsx";

/** A separate document beside the app: it needs no sign-in, and none of the app's code. */
const root = document.querySelector("#root");
if (root === null) throw new Error("the page has no #root");
createRoot(root).render(
  <StrictMode>
    <Reference />
  </StrictMode>,
);
