package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// Login is how to reach an API server, and as which user, where that differs from the kubeconfig.
type Login = clientcmd.ConfigOverrides

// LoginFlags gives a command kubectl's flags for that, such as --as, --token and --request-timeout.
// Help does not list them, as that of kubectl's commands does not. --context and -n are the
// command's own, and --cluster means a cluster of the clusterset here.
func LoginFlags(cmd *cobra.Command, login *Login) {
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.CurrentContext = clientcmd.FlagInfo{}
	names.ContextOverrideFlags = clientcmd.ContextOverrideFlags{AuthInfoName: names.ContextOverrideFlags.AuthInfoName}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(login, flags, names)
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	cmd.Flags().AddFlagSet(flags)
}
