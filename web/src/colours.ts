// Colours of categories: calm, told apart also by people who see fewer of them, and readable on
// light and on dark.
const kCategories = [
  "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e0b83e", "#76b7b2",
  "#e15759", "#9c755f", "#6a7bd0", "#d37295", "#8cb369", "#a0a7b0",
];

export function categoryColour(i: number): string {
  if (i < kCategories.length) return kCategories[i];
  return `hsl(${(i * 137.5) % 360} 38% ${50 + 8 * ((i >> 2) % 3)}%)`;
}

// Weights, optimizer state, activations, gradients, received, scratch.
export const useColours = ["#4e79a7", "#6a7bd0", "#59a14f", "#f28e2b", "#b07aa1", "#a0a7b0"];

// Computing, in transfers, waiting for devices, waiting for channels, gaps.
export const chainColours = ["#4e79a7", "#b07aa1", "#e0b83e", "#f28e2b", "#a0a7b0"];

export interface Theme {
  text: string;
  muted: string;
  faint: string;
  line: string;
  panel: string;
  page: string;
  accent: string;
}

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: value("text"),
    muted: value("muted"),
    faint: value("faint"),
    line: value("line"),
    panel: value("panel"),
    page: value("page"),
    accent: value("accent"),
  };
}
