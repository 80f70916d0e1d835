package certificates

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"karmada.io/karmada/internal/pki"
)

// RotationState is the last completed step of an authority's rotation.
type RotationState string

// The states of a rotation in their order.
const (
	// RotationNone means that no rotation is in progress: only the signing CA is trusted.
	RotationNone RotationState = "None"
	// RotationBegun means that the next authority is trusted, and the old one signs.
	RotationBegun RotationState = "Begun"
	// RotationSwitched means that the new authority signs, and the old one is still trusted.
	RotationSwitched RotationState = "Switched"
)

// RotationError means that a rotation step is not possible in the current state.
type RotationError struct {
	Authority string
	State     RotationState
	// Reason says what is wrong, and Remedy what to do.
	Reason, Remedy string
}

func (e *RotationError) Error() string {
	return fmt.Sprintf("certificate authority %q: %s: %s", e.Authority, e.Reason, e.Remedy)
}

func (b bundle) rotationState() RotationState {
	switch {
	case b.next() != nil:
		return RotationBegun
	case len(b.retired()) > 0:
		return RotationSwitched
	}
	return RotationNone
}

// Rotation returns the state of the authority's rotation.
func Rotation(set Set, authority string) (RotationState, error) {
	b, err := parseBundle(set, authority)
	if err != nil {
		return "", err
	}
	return b.rotationState(), nil
}

// newRotation returns an issuer for a rotation step, and the authority to which the step applies.
func newRotation(existing Set, spec Spec, authority string, now time.Time) (i *issuer, row authorityRow, b bundle, err error) {
	if i, err = newIssuer(existing, spec, now); err != nil {
		return nil, row, b, err
	}
	if row, err = i.spec.authority(authority); err != nil {
		return nil, row, b, err
	}
	b, err = parseBundle(i.set, row.name)
	return i, row, b, err
}

// BeginRotation makes a new authority trusted, while the old one still signs. So every program can start to
// trust the new authority before it encounters a certificate that this authority signed. The new authority
// is spec.GivenCA, if it is set and the authority is "ca", or else is created. If the rotation has already
// begun, nothing changes.
func BeginRotation(existing Set, spec Spec, authority string, now time.Time) (Set, []Change, error) {
	i, row, b, err := newRotation(existing, spec, authority, now)
	if err != nil {
		return nil, nil, err
	}
	switch b.rotationState() {
	case RotationBegun:
		return i.set, nil, nil
	case RotationSwitched:
		return nil, nil, &RotationError{Authority: row.name, State: RotationSwitched, Reason: "the previous rotation is not finished",
			Remedy: "finish it, then begin the next one"}
	}
	next, err := i.newAuthority(row, b)
	if err != nil {
		return nil, nil, err
	}
	b.certs = append(b.certs, next.certs...)
	b.keys = append(b.keys, next.keys...)
	b.write(i.set)
	i.addChange(row.name, fmt.Sprintf("trusts a new authority, valid until %s, besides the old one, which still signs",
		formatDate(next.signer().NotAfter)))
	return i.set, i.changes, nil
}

// newAuthority imports the given authority or creates one.
func (i *issuer) newAuthority(row authorityRow, current bundle) (bundle, error) {
	files := pki.Memory{}
	store := i.store
	store.Files = files
	if row.name != CA || i.spec.GivenCA.IsZero() {
		if _, err := store.EnsureAuthority(row.name, row.commonName); err != nil {
			return bundle{}, err
		}
		return parseBundle(Set(files), row.name)
	}
	if _, err := store.ImportAuthority(row.name, i.spec.GivenCA); err != nil {
		return bundle{}, fmt.Errorf("certificate authority %q: %w", row.name, err)
	}
	given, err := parseBundle(Set(files), row.name)
	if err != nil {
		return bundle{}, err
	}
	if slices.ContainsFunc(current.certs, given.signer().Equal) {
		return bundle{}, &RotationError{Authority: row.name, State: RotationNone, Reason: "the given authority is in use already",
			Remedy: "give the certificate and the key of the next authority"}
	}
	return given, nil
}

// SwitchRotation makes the new authority sign, and issues the authority's certificates again. The old
// authority stays trusted, because programs may still present its certificates. If the rotation was already
// switched, only certificates that are due for renewal are issued.
func SwitchRotation(existing Set, spec Spec, authority string, now time.Time) (Set, []Change, error) {
	i, row, b, err := newRotation(existing, spec, authority, now)
	if err != nil {
		return nil, nil, err
	}
	switch b.rotationState() {
	case RotationNone:
		return nil, nil, &RotationError{Authority: row.name, State: RotationNone, Reason: "no rotation has begun", Remedy: "begin one"}
	case RotationBegun:
		b.switchSigner()
		b.write(i.set)
		i.addChange(row.name, "signs with the new authority, and still trusts the old one")
	}
	signing, err := i.store.LoadAuthority(row.name)
	if err != nil {
		return nil, nil, err
	}
	if err := i.ensureLeaves(signing); err != nil {
		return nil, nil, err
	}
	return i.set, i.changes, nil
}

// switchSigner makes the next authority the signing CA, and keeps only its key.
func (b *bundle) switchSigner() {
	next := b.next()
	key, _ := b.keyOf(next)
	chain := b.chain(next)
	others := slices.DeleteFunc(slices.Clone(b.certs), func(cert *x509.Certificate) bool { return slices.ContainsFunc(chain, cert.Equal) })
	b.certs, b.keys = slices.Concat(chain, others), []bundleKey{key}
}

// FinishRotation removes the old authority from the trusted ones. It returns a RotationError if the old
// authority signed a certificate in the set. If no rotation is in progress, nothing changes.
//
// The authority "ca" also signs the certificates of agents and users, which are not in the set. The caller
// must ensure that they have been replaced.
func FinishRotation(existing Set, authority string) (Set, []Change, error) {
	if !slices.Contains(AuthorityNames(), authority) {
		_, err := Spec{EtcdReplicas: 1}.authority(authority)
		return nil, nil, err
	}
	set := existing.clone()
	b, err := parseBundle(set, authority)
	if err != nil {
		return nil, nil, err
	}
	switch state := b.rotationState(); state {
	case RotationNone:
		return set, nil, nil
	case RotationBegun:
		return nil, nil, &RotationError{Authority: authority, State: state, Reason: "the old authority still signs",
			Remedy: "switch the rotation first"}
	}
	if err := b.verifyLeaves(set); err != nil {
		return nil, nil, err
	}
	retired := b.retired()
	b.certs = slices.DeleteFunc(b.certs, func(cert *x509.Certificate) bool { return slices.ContainsFunc(retired, cert.Equal) })
	b.write(set)
	return set, []Change{{Name: authority, Reason: "no longer trusts the old authority"}}, nil
}

// verifyLeaves returns an error if the signing CA did not sign all certificates of the authority.
func (b bundle) verifyLeaves(set Set) error {
	for _, row := range leavesOf(b.name) {
		file := row.name + pki.CertSuffix
		data, ok := set[file]
		if !ok {
			continue
		}
		certs, err := certutil.ParseCertsPEM(data)
		if err != nil || certs[0].CheckSignatureFrom(b.signer()) != nil {
			return &RotationError{Authority: b.name, State: RotationSwitched, Reason: file + " is not signed by the new authority",
				Remedy: "switch the rotation again, which issues it"}
		}
	}
	return nil
}
