package kubelab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of one cluster.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// identity is the subject of a certificate, and the names and addresses where it serves.
type identity struct {
	// file is the name of the certificate's file, without extension.
	file string
	// user and group are what Kubernetes takes from the certificate.
	user, group string
	names       []string
	addrs       []netip.Addr
}

// makeCerts makes the cluster's authority, and the certificates of its control plane and of every
// node.
func (l *Lab) makeCerts(c *Cluster) error {
	ca, err := newAuthority(l.path(c.Name), c.Name)
	if err != nil {
		return err
	}
	ids := []identity{
		{
			file: "apiserver", user: "kube-apiserver", names: []string{"kubernetes.default.svc"},
			addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), c.Gateway, c.apiService()},
		},
		{file: "front-proxy", user: "front-proxy"},
		{file: "kubelet-client", user: "kube-apiserver-kubelet-client", group: "system:masters"},
		{file: "admin", user: "admin", group: "system:masters"},
		{file: "controllers", user: "system:kube-controller-manager"},
		{file: "scheduler", user: "system:kube-scheduler"},
		{file: "proxy", user: "system:kube-proxy"},
		{file: "cni", user: "cni", group: "system:masters"},
	}
	for _, n := range c.Nodes {
		ids = append(ids, identity{
			file: n.Name, user: "system:node:" + n.Name, group: "system:nodes",
			names: []string{n.Name}, addrs: []netip.Addr{n.Addr},
		})
	}
	for _, id := range ids {
		if err := ca.issue(id); err != nil {
			return err
		}
	}
	return ca.makeTokenKey()
}

func newAuthority(dir, name string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of certificates: %w", err)
	}
	key, err := newKey(filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, err
	}
	template := certificate(pkix.Name{CommonName: name + "-ca"})
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	ca := &authority{dir: dir, cert: template, key: key}
	return ca, ca.sign(template, &key.PublicKey, "ca")
}

func certificate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: subject,
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
	}
}

// newKey makes a private key and writes it to a file.
func newKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return key, writePEM(file, "PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", kind, err)
	}
	return nil
}

// issue makes a key and a certificate for both sides of TLS.
func (a *authority) issue(id identity) error {
	key, err := newKey(filepath.Join(a.dir, id.file+".key"))
	if err != nil {
		return err
	}
	subject := pkix.Name{CommonName: id.user}
	if id.group != "" {
		subject.Organization = []string{id.group}
	}
	cert := certificate(subject)
	cert.KeyUsage = x509.KeyUsageDigitalSignature
	cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	cert.DNSNames = id.names
	for _, a := range id.addrs {
		cert.IPAddresses = append(cert.IPAddresses, net.IP(a.AsSlice()))
	}
	return a.sign(cert, &key.PublicKey, id.file)
}

func (a *authority) sign(cert *x509.Certificate, key *ecdsa.PublicKey, file string) error {
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key, a.key)
	if err != nil {
		return fmt.Errorf("sign certificate %s: %w", file, err)
	}
	return writePEM(filepath.Join(a.dir, file+".crt"), "CERTIFICATE", der)
}

// makeTokenKey makes the key pair that signs and verifies service account tokens.
func (a *authority) makeTokenKey() error {
	key, err := newKey(filepath.Join(a.dir, "tokens.key"))
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return writePEM(filepath.Join(a.dir, "tokens.pub"), "PUBLIC KEY", der)
}
