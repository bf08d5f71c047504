export interface Step {
  readonly instruction: string;
  readonly flags: { readonly [name: string]: string };
  readonly text: string;
  /** In exec form. */
  readonly exec: readonly string[] | undefined;
}

export interface Stage {
  readonly base: string;
  readonly name: string | undefined;
  readonly platform: string | undefined;
  readonly steps: readonly Step[];
}

export function parseDockerfile(text: string): {
  readonly args: readonly string[];
  readonly stages: readonly Stage[];
};
export function copiedBy(step: Pick<Step, 'exec' | 'text'>): {
  readonly sources: readonly string[];
  readonly destination: string;
};
export function parseDockerignore(text: string): (path: string) => boolean;
