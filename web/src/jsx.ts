// What build.mjs turns elements into.
export { Fragment, h } from "preact";
