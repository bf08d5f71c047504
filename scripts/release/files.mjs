/** Names of the files of a release, by its version. */
export const CHECKSUMS = 'SHA256SUMS';
export const SIGNATURE = 'SHA256SUMS.sig';

const OF_ANY_VERSION =
  /^proofgate-(?:chart-|middleware-|client-|go-|java-)?\d+\.\d+\.\d+[\w.-]*\.(?:tgz|cdx\.json|whl|tar\.gz|zip)$/;

/** Whether a release of some version may hold a file of that name. */
export function isOfRelease(name) {
  return name === CHECKSUMS || name === SIGNATURE || OF_ANY_VERSION.test(name);
}

export function filesOf(version) {
  return {
    npm: `proofgate-${version}.tgz`,
    chart: `proofgate-chart-${version}.tgz`,
    sbom: `proofgate-${version}.cdx.json`,
    middleware: `proofgate-middleware-${version}.tgz`,
    middlewareSbom: `proofgate-middleware-${version}.cdx.json`,
    nodeClient: `proofgate-client-${version}.tgz`,
    pythonWheel: `proofgate-${version}-py3-none-any.whl`,
    pythonSdist: `proofgate-${version}.tar.gz`,
    goModule: `proofgate-go-${version}.zip`,
    javaProject: `proofgate-java-${version}.zip`,
  };
}
