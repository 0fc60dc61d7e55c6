"""How many numbers multi-head attention learns."""

from course_lib.checking import stock_mistakes as stock
from course_lib.checking.exercise import Draw, Exercise
from course_lib.multi_head import parameter_count

exercise = Exercise(
    reference=parameter_count,
    lesson="06_costs",
    title="What several heads cost",
    minutes=7,
    difficulty=1,
    hints=(
        "Write down the shape of each matrix. How many of each kind are there: one for each head, "
        "or one for all?",
        "The heads' results lie side by side before the last matrix meets them. How long is such a "
        "row, and how long is the one that comes out?",
        "A bias is added after the product. Is it as long as what goes into a matrix, or as what "
        "comes out?",
    ),
    clauses={
        "Each head has W_Q and W_K of shape": "values_like_keys",
        "All share one W_O": "output_for_each_head",
        "each column of each matrix has one more": "biases_of_the_rows",
    },
)


@exercise.cases
def cases(draw: Draw):
    heads, d_k = draw.number(2, 5), draw.number(2, 9)
    d_v, d_model = d_k + draw.number(1, 9), 19 + draw.number(1, 9)
    yield "one head", (4, 1, 2, 3)
    yield "several heads", (draw.number(10**8, 10**9), heads, d_k, d_v)
    yield "several heads, with biases", (d_model, heads, d_k, d_v, True)
    yield "heads that share a word out", (heads * d_k, heads, d_k, d_k)
    yield "heads that share a word out, with biases", (heads * d_k, heads, d_k, d_k, True)
    yield "one head, with biases", (d_model, 1, d_k, d_v, True)
    yield "the paper's", (512, 8, 64, 64)
    yield "the paper's, with biases", (512, 8, 64, 64, True)


@exercise.edges
def edges(draw: Draw):
    heads, d_k = draw.number(2, 5), draw.number(2, 9)
    d_v, d_model = d_k + draw.number(1, 9), 19 + draw.number(1, 9)
    yield "values narrower than keys", (d_model, heads, d_v, d_k)
    yield "values narrower than keys, with biases", (d_model, heads, d_v, d_k, True)


@exercise.requires("heads that share a word out cost as much together as one")
def heads_are_free(answer, draw: Draw):
    d_model = 12 * draw.number(1, 10**5)
    for bias in (False, True):
        sizes = [(heads, d_model // heads) for heads in (1, 2, 3, 6)]
        counts = {answer(d_model, heads, d_k, d_k, bias) for heads, d_k in sizes}
        if len(counts) != 1 or counts == {answer(2 * d_model, 2, d_model, d_model, bias)}:
            return False
    return True


@exercise.requires("one head more costs as much as the head before it")
def even_growth(answer, draw: Draw):
    d_model, d_k, d_v = (draw.number(2, 50) for _ in range(3))
    for bias in (False, True):
        one, two, three = (answer(d_model, heads, d_k, d_v, bias) for heads in (1, 2, 3))
        if not three - two == two - one > 0:
            return False
    return True


def biased(count, columns, bias):
    """Add the biases of so many columns where they are asked for."""
    return count + columns if bias else count


@exercise.mistake
def no_output_matrix(d_model, heads, d_k, d_v, bias=False):
    """The matrix that mixes the heads is missing. Four matrices learn: which one comes after the
    heads have been laid side by side?"""
    columns = heads * (2 * d_k + d_v)
    return biased(d_model * columns, columns, bias)


@exercise.mistake
def output_of_one_head(d_model, heads, d_k, d_v, bias=False):
    """The output matrix has as many rows as one head has columns. It meets all heads side by side:
    how long is such a row?"""
    columns = heads * (2 * d_k + d_v)
    return biased(d_model * columns + d_v * d_model, columns + d_model, bias)


@exercise.mistake
def square_output(d_model, heads, d_k, d_v, bias=False):
    """The output matrix was counted as square, d_model by d_model. It is so only where h d_v
    happens to be d_model: what goes into it?"""
    columns = heads * (2 * d_k + d_v)
    return biased(d_model * columns + d_model**2, columns + d_model, bias)


@exercise.mistake
def output_inside_each_head(d_model, heads, d_k, d_v, bias=False):
    """Each head got an output matrix of its own, d_v by d_v. There is one for all of them: what
    goes in, and what should come out, so that words keep their size?"""
    columns = heads * (2 * d_k + d_v)
    return biased(d_model * columns + heads * d_v * d_v, columns + heads * d_v, bias)


@exercise.mistake
def output_bias_forgotten(d_model, heads, d_k, d_v, bias=False):
    """The matrices are right, but the output matrix has a bias too: three of the four were
    counted."""
    columns = heads * (2 * d_k + d_v)
    return biased(parameter_count(d_model, heads, d_k, d_v), columns, bias)


@exercise.mistake
def output_bias_of_the_rows(d_model, heads, d_k, d_v, bias=False):
    """The matrices are right, but the output's bias was counted as long as what goes into its
    matrix. It is added to what comes out."""
    columns = heads * (2 * d_k + d_v)
    return biased(parameter_count(d_model, heads, d_k, d_v), columns + heads * d_v, bias)


@exercise.mistake
def output_bias_for_each_head(d_model, heads, d_k, d_v, bias=False):
    """The matrices are right, but the output's bias was counted once for each head. All heads have
    one output matrix: how many biases does it have?"""
    columns = heads * (2 * d_k + d_v)
    return biased(parameter_count(d_model, heads, d_k, d_v), columns + heads * d_model, bias)


@exercise.mistake
def output_bias_alone(d_model, heads, d_k, d_v, bias=False):
    """The matrices are right, but only the output's bias was counted. Queries, keys and values have
    biases as well."""
    return biased(parameter_count(d_model, heads, d_k, d_v), d_model, bias)


@exercise.mistake
def biases_of_one_head(d_model, heads, d_k, d_v, bias=False):
    """The matrices are right, but the biases of queries, keys and values were counted for one head.
    Each head has its own."""
    return biased(parameter_count(d_model, heads, d_k, d_v), 2 * d_k + d_v + d_model, bias)


@exercise.mistake
def always_biased(d_model, heads, d_k, d_v, bias=False):
    """Biases were counted where nobody asked for them: `bias` is False by default."""
    return parameter_count(d_model, heads, d_k, d_v, True)


@exercise.mistake
def one_number_a_bias(d_model, heads, d_k, d_v, bias=False):
    """The matrices are right, but each bias was counted as one number. How many columns does it
    have to shift?"""
    return biased(parameter_count(d_model, heads, d_k, d_v), 4, bias)


@exercise.mistake
def biases_of_the_model(d_model, heads, d_k, d_v, bias=False):
    """The matrices are right, but each bias was counted as long as d_model. A bias is as long as
    what comes out of its matrix: what comes out of W_K, for all heads together?"""
    return biased(parameter_count(d_model, heads, d_k, d_v), 4 * d_model, bias)


@exercise.mistake
def four_squares(d_model, heads, d_k, d_v, bias=False):
    """This is four square matrices, which is right only where the heads share a word out evenly.
    What are d_k and d_v for?"""
    return biased(4 * d_model**2, 4 * d_model, bias)


@exercise.mistake
def heads_ignored(d_model, heads, d_k, d_v, bias=False):
    """The number of heads plays no part. It plays none where d_k shrinks as heads are added, but
    here d_k is given: what does each head bring with it?"""
    return parameter_count(d_model, 1, d_k, d_v, bias)


@exercise.mistake
def values_like_keys(d_model, heads, d_k, d_v, bias=False):
    """The values were taken to be as long as the keys. They need not be: where does d_v come in?"""
    return parameter_count(d_model, heads, d_k, d_k, bias)


@exercise.mistake
def one_matrix_for_queries_and_keys(d_model, heads, d_k, d_v, bias=False):
    """One matrix of size d_k is missing. Queries and keys are equally long, and each has a matrix
    of its own."""
    columns = heads * (d_k + d_v)
    return biased(d_model * columns + heads * d_v * d_model, columns + d_model, bias)


@exercise.mistake
def output_for_each_head(d_model, heads, d_k, d_v, bias=False):
    """The output matrix was counted once for each head. All heads meet one matrix, and its rows
    know their number already."""
    columns = heads * (2 * d_k + d_v)
    return biased(d_model * columns + heads * heads * d_v * d_model, columns + d_model, bias)


@exercise.mistake
def matrices_of_one_head(d_model, heads, d_k, d_v, bias=False):
    """Queries, keys and values were given the matrices of one head. Each head has three of its own:
    how often does d_model times (2 d_k + d_v) come in?"""
    count = d_model * (2 * d_k + d_v) + heads * d_v * d_model
    return biased(count, heads * (2 * d_k + d_v) + d_model, bias)


@exercise.mistake
def biases_of_the_rows(d_model, heads, d_k, d_v, bias=False):
    """The matrices are right, but each bias is as long as what goes into its matrix. It is added to
    what comes out: how many numbers come out of W_K, for all heads together?"""
    rows = 3 * d_model + heads * d_v
    return biased(parameter_count(d_model, heads, d_k, d_v), rows, bias)


stock.ignored(exercise, "bias")


@exercise.mistake
def one_head_but_the_output(d_model, heads, d_k, d_v, bias=False):
    """Queries, keys and values were given the matrices, and the biases, of one head. Each head has
    three of its own."""
    count = d_model * (2 * d_k + d_v) + heads * d_v * d_model
    return count + 2 * d_k + d_v + d_model if bias else count


@exercise.mistake
def square_output_in_each_head(d_model, heads, d_k, d_v, bias=False):
    """Each head was given an output matrix of d_model x d_model. There is one for all heads: how
    many numbers do all of them hand over, and how many does it return?"""
    square = heads * (d_model * (2 * d_k + d_v) + d_model * d_model)
    return square + heads * (2 * d_k + d_v) + d_model if bias else square


@exercise.mistake
def output_matrix_forgotten(d_model, heads, d_k, d_v, bias=False):
    """The matrix W_O was forgotten. It mixes what the heads found: how many rows and columns has
    it?"""
    columns = heads * (2 * d_k + d_v)
    return d_model * columns + (columns + d_model if bias else 0)


@exercise.mistake
def keys_like_values(d_model, heads, d_k, d_v, bias=False):
    """Keys were counted with d_v columns: d_k + 2 d_v. A key is compared with a query: which size
    must the two have in common?"""
    columns = heads * (d_k + 2 * d_v)
    return d_model * columns + heads * d_v * d_model + (columns + d_model if bias else 0)


@exercise.alternative
def matrix_by_matrix(d_model, heads, d_k, d_v, bias=False):
    shapes = heads * [(d_model, d_k), (d_model, d_k), (d_model, d_v)] + [(heads * d_v, d_model)]
    return sum(rows * columns + (columns if bias else 0) for rows, columns in shapes)


@exercise.alternative
def one_row_more(d_model, heads, d_k, d_v, bias=False):
    # a bias is a row that meets a 1
    return heads * (2 * d_k + d_v) * (d_model + bias) + d_model * (heads * d_v + bias)
