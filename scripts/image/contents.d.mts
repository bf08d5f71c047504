export const HOME: string;
export const LAUNCHER: { readonly from: string; readonly firstLine: string };
export const USER: { readonly name: string; readonly id: number };
export const NODE: string;
export const PROGRAM_LINK: { readonly path: string; readonly to: string };
export const SBOM: string;
