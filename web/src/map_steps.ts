// From what is selected to what is in it, around it and beside it in the map, for those who use keys.
import type { Found, Layout } from "./map_layout";
import type { Store } from "./store";

export function stepsOf(layout: Layout, store: Store) {
  const { result } = layout;
  const map = result.raw.map!;
  // Boxes without a name hold the ops that a module has beside its parts.
  const named = (box: number) => box === 0 || (map.name[box] && map.path[box]);
  const chosen = (): Found => {
    const { selected } = store.state;
    if (selected?.type === "op") return { box: result.boxOf[selected.id], op: selected.id };
    const box = selected?.type === "module" ? map.path.findIndex((path, i) => path === selected.path && map.name[i]) : 0;
    return { box: Math.max(0, box), op: -1 };
  };
  const within = ({ box, op }: Found): Found[] => {
    if (op >= 0) return [];
    const parts = layout.inside[box].map((part): Found => ({ box: part, op: -1 }));
    return [
      ...parts.flatMap((part) => (named(part.box) ? [part] : within(part))),
      ...map.ops[box].map((own) => ({ box, op: own })),
    ];
  };
  const around = (): Found => {
    const { box, op } = chosen();
    let outer = op >= 0 ? box : map.parent[box];
    while (outer > 0 && !named(outer)) outer = map.parent[outer];
    return { box: Math.max(0, outer), op: -1 };
  };
  return {
    inside: (): Found | undefined => within(chosen())[0],
    around,
    beside: (direction: number): Found | undefined => {
      const now = chosen();
      const all = within(around());
      const at = all.findIndex(({ box, op }) => box === now.box && op === now.op);
      return at < 0 ? all[0] : all[at + direction];
    },
  };
}
