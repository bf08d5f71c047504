/** A release's bill of materials: the program, and every package that its lock file installs in production, on any system. */
import { documentOf, rootComponent } from './document.mjs';
import { describePackages, productionFolders } from './npm-packages.mjs';

export function describeRelease({ lock, epochSeconds, manifest }) {
  const root = rootComponent(manifest);
  return documentOf(describePackages(lock, productionFolders(lock), root['bom-ref']), { epochSeconds, root });
}
