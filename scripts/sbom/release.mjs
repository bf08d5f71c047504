/** A release's bill of materials: the program, and every package that its lock file installs in production, on any system. */
import { documentOf, rootComponent } from './document.mjs';
import { describePackages, foldersReached, productionFolders } from './npm-packages.mjs';

export function describeRelease({ lock, epochSeconds, manifest }) {
  const root = rootComponent(manifest);
  return documentOf(describePackages(lock, productionFolders(lock), root['bom-ref']), { epochSeconds, root });
}

/** The same of the middleware: the packages that its dependencies lead to. */
export function describeMiddleware({ lock, epochSeconds, manifest }) {
  const root = rootComponent(manifest);
  const { dependencies } = manifest;
  const own = { ...lock, packages: { ...lock.packages, '': { dependencies } } };
  const packages = describePackages(own, foldersReached(own), root['bom-ref']);
  return documentOf(packages, { epochSeconds, root });
}
