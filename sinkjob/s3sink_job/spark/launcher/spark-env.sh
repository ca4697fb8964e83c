# Spark's launcher reads this file before it starts Java.
#
# The launcher always adds the module jdk.incubator.vector, which only Spark's machine learning uses, and Java prints a
# warning about it at every start. No option of Spark or Java turns that off, so the module is removed from the command.
# Java's standard output goes to standard error: a command's own output, which may be JSON, has no lines of others in it.

exec() {
    local arguments=() argument
    for argument; do
        [ "$argument" = --add-modules=jdk.incubator.vector ] || arguments+=("$argument")
    done
    builtin exec "${arguments[@]}" >&2
}
# The launcher exports all that is defined here, and other shells must not inherit this.
export -n -f exec

# From here on Spark's own folder of settings counts, as it would without this file.
SPARK_CONF_DIR=$SPARK_HOME/conf
if [ -f "$SPARK_CONF_DIR/spark-env.sh" ]; then
    . "$SPARK_CONF_DIR/spark-env.sh"
fi
