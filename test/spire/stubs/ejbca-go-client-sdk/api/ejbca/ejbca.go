// Package ejbca lets SPIRE's EJBCA plugin compile without its client library. The client cannot be built: both
// constructors fail, so a configuration that names the plugin is rejected. Nothing behind them is ever called.
package ejbca

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
)

var errNotBuilt = errors.New("this build of SPIRE has no EJBCA client")

type Authenticator interface{}

type MTLSAuthenticatorBuilder struct{}

func NewMTLSAuthenticatorBuilder() MTLSAuthenticatorBuilder { return MTLSAuthenticatorBuilder{} }

func (b MTLSAuthenticatorBuilder) WithClientCertificate(*tls.Certificate) MTLSAuthenticatorBuilder {
	return b
}

func (b MTLSAuthenticatorBuilder) WithCaCertificates([]*x509.Certificate) MTLSAuthenticatorBuilder {
	return b
}

func (MTLSAuthenticatorBuilder) Build() (Authenticator, error) { return nil, errNotBuilt }

type Configuration struct{ Host string }

func NewConfiguration() *Configuration { return new(Configuration) }

func (*Configuration) SetAuthenticator(Authenticator) {}

type APIClient struct{ V1CertificateApi V1CertificateApi }

func NewAPIClient(*Configuration) (*APIClient, error) { return nil, errNotBuilt }

type V1CertificateApi struct{}

func (V1CertificateApi) EnrollPkcs10Certificate(context.Context) ApiEnrollPkcs10CertificateRequest {
	return ApiEnrollPkcs10CertificateRequest{}
}

type ApiEnrollPkcs10CertificateRequest struct{}

func (r ApiEnrollPkcs10CertificateRequest) EnrollCertificateRestRequest(EnrollCertificateRestRequest) ApiEnrollPkcs10CertificateRequest {
	return r
}

func (ApiEnrollPkcs10CertificateRequest) Execute() (CertificateRestResponse, *http.Response, error) {
	return CertificateRestResponse{}, nil, errNotBuilt
}

type EnrollCertificateRestRequest struct{}

func NewEnrollCertificateRestRequest() *EnrollCertificateRestRequest {
	return new(EnrollCertificateRestRequest)
}

func (*EnrollCertificateRestRequest) SetUsername(string)                 {}
func (*EnrollCertificateRestRequest) SetPassword(string)                 {}
func (*EnrollCertificateRestRequest) SetCertificateRequest(string)       {}
func (*EnrollCertificateRestRequest) SetCertificateAuthorityName(string) {}
func (*EnrollCertificateRestRequest) SetCertificateProfileName(string)   {}
func (*EnrollCertificateRestRequest) SetEndEntityProfileName(string)     {}
func (*EnrollCertificateRestRequest) SetIncludeChain(bool)               {}
func (*EnrollCertificateRestRequest) SetAccountBindingId(string)         {}

type CertificateRestResponse struct{ CertificateChain []string }

func (CertificateRestResponse) GetResponseFormat() string { return "" }
func (CertificateRestResponse) GetCertificate() string    { return "" }

type GenericOpenAPIError struct{}

func (*GenericOpenAPIError) Error() string { return errNotBuilt.Error() }
func (*GenericOpenAPIError) Body() []byte  { return nil }
