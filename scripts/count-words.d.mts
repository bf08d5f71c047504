export function wordsOfPages(): readonly (readonly [path: string, words: number])[];
