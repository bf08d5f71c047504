/** Every way on which documents come to a verifier. */
import { openControlStation } from './control-station.ts';
import { openDirectoryStation } from './directory-station.ts';
import { openStateStation } from './state-station.ts';
import type { OpenStation } from './station.ts';

export const STATIONS = {
  'the local directory': openDirectoryStation,
  'the state directory': openStateStation,
  'a hostile Control': openControlStation,
} as const satisfies { readonly [name: string]: OpenStation };

export type StationName = keyof typeof STATIONS;
export const STATION_NAMES = Object.keys(STATIONS) as readonly StationName[];
