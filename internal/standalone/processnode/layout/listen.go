package layout

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/access/podenvironment"
)

// ErrForeignAddress means that a program would listen on an address of the machine or of another Pod.
var ErrForeignAddress = errors.New("not an address of the Pod")

// listenFlag describes a flag that contains a listen address.
type listenFlag int

const (
	notListenFlag listenFlag = iota
	// addressFlag is a flag with one address, with or without port.
	addressFlag
	// urlsFlag is a flag of etcd with a list of URLs.
	urlsFlag
)

func kindOfFlag(flag string) listenFlag {
	name := strings.ReplaceAll(strings.TrimLeft(flag, "-"), "_", "-")
	switch {
	case strings.HasSuffix(name, "bind-address"), strings.HasSuffix(name, "listen-addr"), name == "address":
		return addressFlag
	case strings.HasPrefix(name, "listen-") && strings.HasSuffix(name, "-urls"):
		return urlsFlag
	default:
		return notListenFlag
	}
}

// restrictAddresses replaces listen addresses that mean "all addresses" with the Pod's address. It returns
// an error for an address that is neither the address of the Pod nor loopback, because that would be an
// address of the machine.
func restrictAddresses(arguments []string, address string) ([]string, error) {
	var restricted []string
	flag := ""
	for _, argument := range arguments {
		value, prefix := argument, ""
		if strings.HasPrefix(argument, "-") {
			name, flagValue, inline := strings.Cut(argument, "=")
			flag = name
			if !inline {
				restricted = append(restricted, argument)
				continue
			}
			value, prefix = flagValue, name+"="
		}
		value, err := restrictValue(flag, value, address)
		if err != nil {
			return nil, err
		}
		restricted = append(restricted, prefix+value)
		flag = ""
	}
	return restricted, nil
}

// restrictValue restricts the value of one flag. Values without a flag have an empty flag.
func restrictValue(flag, value, address string) (string, error) {
	kind := kindOfFlag(flag)
	if kind == urlsFlag {
		return restrictURLs(flag, value, address)
	}
	value = podenvironment.ReplaceUnspecifiedHost(value, address)
	if kind == addressFlag && !isPodAddress(value, address) {
		return "", foreignAddressError(flag, value, address)
	}
	return value, nil
}

func foreignAddressError(flag, value, address string) error {
	return fmt.Errorf("argument %s=%s: %w: omit the host, or use %s or $(%s)", flag, value, ErrForeignAddress, address,
		podenvironment.PodAddressVariable)
}

// restrictURLs restricts a list of URLs. A URL of a unix socket is rejected, because programs find
// each other by addresses only.
func restrictURLs(flag, value, address string) (string, error) {
	if value == "" {
		return "", nil
	}
	var restricted []string
	for text := range strings.SplitSeq(value, ",") {
		parsed, err := url.Parse(strings.TrimSpace(text))
		if err != nil {
			return "", errors.Join(foreignAddressError(flag, text, address), err)
		}
		parsed.Host = podenvironment.ReplaceUnspecifiedHost(parsed.Host, address)
		if scheme := parsed.Scheme; scheme != "http" && scheme != "https" || !isPodAddress(parsed.Host, address) {
			return "", foreignAddressError(flag, text, address)
		}
		restricted = append(restricted, parsed.String())
	}
	return strings.Join(restricted, ","), nil
}

// isPodAddress reports whether a listen address is not reachable from other machines and is not
// the address of another Pod. An empty address means that the program does not listen.
func isPodAddress(listenAddress, podAddress string) bool {
	host, _, err := net.SplitHostPort(listenAddress)
	if err != nil {
		host = listenAddress
	}
	switch host {
	case "", "0", "localhost", podAddress:
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return ip == netip.IPv6Loopback() || ip.Unmap() == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// IsAPIServer reports whether a program is kube-apiserver.
func IsAPIServer(program string) bool { return program == kubeAPIServer || program == karmadaAPIServer }

// Programs of other projects, which do not read podenvironment.PodAddressVariable.
const (
	kubeAPIServer         = "kube-apiserver"
	karmadaAPIServer      = "karmada-apiserver"
	kubeControllerManager = "kube-controller-manager"
	etcdServer            = "etcd"
)

// foreignDefaults returns the arguments that another project's program gets unless the Pod sets them. By
// default, these programs listen on all addresses or on 127.0.0.1, which all Pods share.
func foreignDefaults(program, address string) []string {
	switch {
	case IsAPIServer(program):
		// Without an address to advertise, kube-apiserver looks for an address of the machine.
		return []string{"--bind-address=" + address, "--advertise-address=" + address}
	case program == kubeControllerManager:
		return []string{"--bind-address=" + address}
	case program == etcdServer:
		return []string{
			"--listen-client-urls=http://" + net.JoinHostPort(address, "2379"),
			"--advertise-client-urls=http://" + net.JoinHostPort(address, "2379"),
			"--listen-peer-urls=http://" + net.JoinHostPort(address, "2380"),
			// All Pods' connections come from 127.0.0.1, so a certificate with a member's name never matches a
			// connection's source. The certificate itself is verified.
			"--peer-skip-client-san-verification=true",
		}
	default:
		return nil
	}
}

// withDefaults adds the default arguments that are neither among the arguments nor among the
// variables of the program.
func withDefaults(program Program, arguments []string, env []corev1.EnvVar, address string) []string {
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		return arguments // a subcommand, such as completion
	}
	var added []string
	for _, argument := range slices.Concat(foreignDefaults(program.Name, address), program.Defaults) {
		name, _, _ := strings.Cut(argument, "=")
		isSet := slices.ContainsFunc(arguments, func(given string) bool {
			given, _, _ = strings.Cut(given, "=")
			return strings.TrimLeft(strings.ReplaceAll(given, "_", "-"), "-") == strings.TrimLeft(name, "-")
		})
		isSet = isSet || program.Name == etcdServer && slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return etcdFlag(v.Name) == name })
		if !isSet {
			added = append(added, argument)
		}
	}
	return append(added, arguments...)
}

// etcdFlag returns the flag of etcd that an environment variable sets, or an empty string.
func etcdFlag(variable string) string {
	name, ok := strings.CutPrefix(variable, "ETCD_")
	if !ok {
		return ""
	}
	return "--" + strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}

var (
	errEtcdConfigFile = errors.New("the node cannot restrict the addresses in a configuration file of etcd: use arguments")
	errEtcdProxy      = errors.New("the node runs etcd only as a server: omit the subcommand")
)

// validateEtcdArguments rejects ways to start etcd that restrictAddresses cannot see.
func validateEtcdArguments(arguments []string) error {
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		return fmt.Errorf("argument %s: %w", arguments[0], errEtcdProxy)
	}
	for _, argument := range arguments {
		if name, _, _ := strings.Cut(argument, "="); strings.TrimLeft(name, "-") == "config-file" && strings.HasPrefix(name, "-") {
			return fmt.Errorf("argument %s: %w", argument, errEtcdConfigFile)
		}
	}
	return nil
}

// restrictVariable restricts the listen addresses in a variable of etcd. Other programs read no
// addresses from variables.
func restrictVariable(program string, variable corev1.EnvVar, address string) (string, error) {
	flag := etcdFlag(variable.Name)
	switch {
	case program != etcdServer || flag == "":
		return variable.Value, nil
	case flag == "--config-file":
		return "", fmt.Errorf("variable %s: %w", variable.Name, errEtcdConfigFile)
	case kindOfFlag(flag) == notListenFlag:
		return variable.Value, nil
	default:
		return restrictValue(flag, variable.Value, address)
	}
}
